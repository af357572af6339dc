# Writes the definition of sim/main/commit.h's commit() into OUTPUT: cmake -DSOURCE=... -DOUTPUT=... -P commit.cmake
# It runs at every build and writes only what is new, so that nothing is compiled while the commit is the same.
set(text "")
execute_process(COMMAND git -C "${SOURCE}" rev-parse --show-toplevel OUTPUT_VARIABLE top RESULT_VARIABLE failed
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(REAL_PATH "${SOURCE}" source)
if(NOT failed AND top STREQUAL source)  # a copy inside another repository is not of its commit
  execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12 OUTPUT_VARIABLE described
                  RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(text "${described}")
  endif()
endif()
set(code "#include \"sim/main/commit.h\"\n\nnamespace netsim {\n\nstd::string commit() { return \"${text}\"; }\n\n}  // namespace netsim\n")
set(old "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT old STREQUAL code)
  file(WRITE "${OUTPUT}" "${code}")
endif()
