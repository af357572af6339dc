#!/usr/bin/env bash
# Makes all pictures of docs/pictures/, which the pages of docs/ show.
#   scripts/pictures.sh [NETSIM]            all of them (default of NETSIM: build/release/netsim)
#   scripts/pictures.sh --quick [NETSIM]    those that take seconds: clusters, schedules of collectives, the worth of information
#   scripts/pictures.sh --list              the names of all pictures, and nothing is made
# Plots need python3-yaml and python3-matplotlib. The sweeps and studies behind them take about 15 minutes on two cores.
# Runs that are kept in results/ are not simulated again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pictures=docs/pictures
sweeps=(sweeps/{incast,fat_tree,sampled_marking,breakdown,main_job_rate}
        examples/{oversubscription,experts,all_reduce,topologies,schedules,disturbed})
schedules=(ring halving_doubling pairwise binomial_tree)

# The clusters of configs/topologies/; shift is a workload.
clusters() {
  local config
  for config in configs/topologies/*.yaml; do
    config=$(basename "$config" .yaml)
    [[ $config == shift ]] || echo "$config"
  done
}

list_pictures() {
  clusters
  printf 'schedule_%s\n' "${schedules[@]}"
  echo worth
  local sweep
  for sweep in "${sweeps[@]}"; do
    sed -n 's/^ *file: \(.*\)\.svg$/\1/p' "configs/$sweep.yaml"
  done
  printf '%s\n' schedulers overlaps strategies example_schedulers survey_fig5b
}

draw_quick() {
  local name worth
  for name in $(clusters); do
    "$netsim" --config "configs/topologies/$name.yaml" --draw "$pictures/$name.svg"
  done
  for name in "${schedules[@]}"; do
    "$netsim" --show-schedule "$name" --ranks 8 --out "$pictures/schedule_$name.svg" >/dev/null
  done
  worth=$(mktemp -d)
  trap 'rm -rf "$worth"' RETURN
  "$netsim" --config configs/studies/worth/cluster.yaml --workload configs/studies/worth/jobs.yaml \
    --worth ages=0,10us,100us,1ms --quiet --out "$worth"
  cp "$worth/worth.svg" "$pictures/worth.svg"
}

draw_studies() {
  local sweep
  for sweep in "${sweeps[@]}"; do
    scripts/sweep.py "configs/$sweep.yaml" --binary "$netsim" --plot "$pictures"
  done
  scripts/schedulers.py --binary "$netsim" --plot "$pictures/schedulers.svg"
  scripts/schedulers.py --binary "$netsim" --overlaps --plot "$pictures/overlaps.svg"
  scripts/schedulers.py --binary "$netsim" --workloads VGG-19 --networks "100 Gb/s" --plot "$pictures/example_schedulers.svg"
  scripts/strategies.py --binary "$netsim" --plot "$pictures/strategies.svg"
  scripts/survey_fig5b.py --binary "$netsim" --picture "$pictures/survey_fig5b.svg"
}

if [[ ${1:-} == --list ]]; then
  list_pictures
  exit
fi
quick=
if [[ ${1:-} == --quick ]]; then
  quick=1
  shift
fi
netsim=${1:-build/release/netsim}
draw_quick
[[ $quick ]] || draw_studies
