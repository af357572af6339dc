# Registers the tests of a GoogleTest runner with ctest, a test for each suite, whose cases run in one process. A process
# for each case, as gtest_discover_tests has it, would spend a tenth of the quick tests' time on starting. Under
# AddressSanitizer each start takes half a second.
#   add_test_suites(TARGET [PREFIX TEXT] [LABEL TEXT] [TIMEOUT SECONDS] [FIRST NAMES...] [SHARED NAMES...] [STUDY NAMES...]
#                   [THREADS NAMES...])
# NAMES are regular expressions that match whole names of suites; a name that this runner does not have is ignored.
#   PREFIX  goes before the names of all suites.
#   LABEL   is a label of all suites, besides those of their size.
#   FIRST   suites that take long, so ctest begins with them.
#   SHARED  suites that run a share of their cases (tests/support/test_size.h). ctest begins with them, too. A second test,
#           whose name has `Long` in front, runs all cases.
#   STUDY   suites that replay a study or a figure of a paper.
#   THREADS suites that run several threads.
# Each test has the label `long` if its name begins with `Long`, otherwise `quick`. Those of STUDY have `study`, too, and
# those of THREADS `threads`.
# The test `LongOthers.LABEL` runs all cases of the suites that are neither long nor SHARED: those of properties, for example.
#
# A suite that skipped a case, and had none that failed, counts as skipped. Its output then ends with the list of skipped
# cases, which is not at the end after a failure or a crash.
#
# The build runs this file as a script, which asks the runner for its suites and writes what ctest includes.

# Whether `name` is one of the regular expressions `names`.
function(is_one_of result name names)
  set(${result} false PARENT_SCOPE)
  foreach(pattern IN LISTS names)
    if(name MATCHES "^(${pattern})$")
      set(${result} true PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(NETSIM_TEST_SUITES_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(add_test_suites target)
    cmake_parse_arguments(PARSE_ARGV 1 suites "" "PREFIX;LABEL;TIMEOUT" "FIRST;SHARED;STUDY;THREADS")
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${target}.cmake)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -DRUNNER=$<TARGET_FILE:${target}> -DPREFIX=${suites_PREFIX} -DLABEL=${suites_LABEL}
              -DTIMEOUT=${suites_TIMEOUT} "-DFIRST=${suites_FIRST}" "-DSHARED=${suites_SHARED}" "-DSTUDY=${suites_STUDY}"
              "-DTHREADS=${suites_THREADS}" -DFILE=${file} -P ${NETSIM_TEST_SUITES_SCRIPT})
    file(WRITE ${file}.in_ctest  # a build of other targets leaves none
      "if(EXISTS \"${file}\")\n  include(\"${file}\")\nelse()\n  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\n"
      "  set_tests_properties(${target}_NOT_BUILT PROPERTIES LABELS quick)\nendif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file}.in_ctest)
  endfunction()
  return()
endif()

# Appends the test `name`, which runs `suite`, to `tests`.
function(append_test name suite)
  set(labels quick ${LABEL})
  set(properties "TIMEOUT ${TIMEOUT}")
  if(name MATCHES "^Long")
    set(labels long ${LABEL})
    set(properties "TIMEOUT 7200")
  elseif(first OR shared)
    string(APPEND properties " COST 100")
  endif()
  if(NOT name STREQUAL "${PREFIX}${suite}")
    string(APPEND properties " ENVIRONMENT NETSIM_TEST_SIZE=full")
  endif()
  foreach(label IN ITEMS study threads)
    if(${label})
      list(APPEND labels ${label})
    endif()
  endforeach()
  string(APPEND tests
    "add_test([==[${name}]==] [==[${RUNNER}]==] [==[--gtest_filter=${suite}.*]==] --gtest_brief=1)\n"
    "set_tests_properties([==[${name}]==] PROPERTIES SKIP_RETURN_CODE 77 "
    "LABELS [==[${labels}]==] ${properties})\n")
  set(tests "${tests}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND ${RUNNER} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${listed}")
set(tests "")
set(long_or_shared "Long*")  # as a filter of GoogleTest has them
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.( |$)")  # Suite., Instance/Suite. or Suite/0.  # TypeParam = ...
    set(suite ${CMAKE_MATCH_1})
    is_one_of(first ${suite} "${FIRST}")
    is_one_of(shared ${suite} "${SHARED}")
    is_one_of(study ${suite} "${STUDY}")
    is_one_of(threads ${suite} "${THREADS}")
    append_test(${PREFIX}${suite} ${suite})
    if(shared)
      append_test(Long${PREFIX}${suite} ${suite})
      string(APPEND long_or_shared ":${suite}.*")
    endif()
  endif()
endforeach()
if(tests STREQUAL "")
  message(FATAL_ERROR "${RUNNER} has no tests")
endif()
if(LABEL)
  string(APPEND tests
    "add_test([==[LongOthers.${LABEL}]==] [==[${RUNNER}]==] [==[--gtest_filter=-${long_or_shared}]==] --gtest_brief=1)\n"
    "set_tests_properties([==[LongOthers.${LABEL}]==] PROPERTIES SKIP_RETURN_CODE 77 "
    "LABELS [==[long;${LABEL}]==] TIMEOUT 7200 ENVIRONMENT NETSIM_TEST_SIZE=full)\n")
endif()
file(WRITE ${FILE} "${tests}")
