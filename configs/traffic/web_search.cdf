# Flow sizes of a web-search cluster: Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, section 2.2, as read
# off its figure and rounded in the traffic generator of Li et al., HPCC, SIGCOMM 2019. Mean: 1.71 MB.
#
# bytes     percent of the flows that are at most this large; linear in between
      0       0
  10000      15
  20000      20
  30000      30
  50000      40
  80000      53
 200000      60
1000000      70
2000000      80
5000000      90
10000000     97
30000000    100
