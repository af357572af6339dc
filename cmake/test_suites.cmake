# Registers the tests of a GoogleTest runner with ctest, a test for each suite, whose cases run in one process. A process
# for each case, as gtest_discover_tests has it, would spend a tenth of the quick tests' time on starting. Under
# AddressSanitizer each start takes half a second.
#   add_test_suites(TARGET FILTER [PREFIX TEXT] [PROPERTIES NAME VALUE ...])
# FILTER is GoogleTest's and chooses suites; PREFIX goes before their names.
#
# A suite that skipped a case, and had none that failed, counts as skipped. Its output then ends with the list of skipped
# cases, which is not at the end after a failure or a crash.
#
# The build runs this file as a script, which asks the runner for its suites and writes what ctest includes.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(NETSIM_TEST_SUITES_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(add_test_suites target filter)
    cmake_parse_arguments(PARSE_ARGV 2 suites "" "PREFIX" "PROPERTIES")
    string(SHA1 name "${suites_PREFIX} ${filter}")
    string(SUBSTRING ${name} 0 8 name)
    string(PREPEND name ${target}_)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}.cmake)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -DRUNNER=$<TARGET_FILE:${target}> -DFILTER=${filter} -DPREFIX=${suites_PREFIX}
              "-DPROPERTIES=${suites_PROPERTIES}" -DFILE=${file} -P ${NETSIM_TEST_SUITES_SCRIPT})
    file(WRITE ${file}.in_ctest  # a build of other targets leaves none
      "if(EXISTS \"${file}\")\n  include(\"${file}\")\nelse()\n  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file}.in_ctest)
  endfunction()
  return()
endif()

execute_process(COMMAND ${RUNNER} --gtest_list_tests --gtest_filter=${FILTER} OUTPUT_VARIABLE listed
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${listed}")
string(JOIN " " properties ${PROPERTIES})
set(tests "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.( |$)")  # Suite., Instance/Suite. or Suite/0.  # TypeParam = ...
    set(suite ${CMAKE_MATCH_1})
    string(APPEND tests
      "add_test([==[${PREFIX}${suite}]==] [==[${RUNNER}]==] [==[--gtest_filter=${suite}.*]==] --gtest_brief=1)\n"
      "set_tests_properties([==[${PREFIX}${suite}]==] PROPERTIES SKIP_REGULAR_EXPRESSION "
      "[==[\\[  SKIPPED \\] [0-9]+ tests?[.][\n ]*$]==] ${properties})\n")
  endif()
endforeach()
if(tests STREQUAL "")
  message(FATAL_ERROR "${RUNNER} has no tests that ${FILTER} names")
endif()
file(WRITE ${FILE} "${tests}")
