# Writes the files that report.html is made of into OUTPUT, a C++ source:
#   cmake -DOUTPUT=... "-DFILES=template.html;page.css;..." -P page_assets.cmake
# A file is one raw string literal, which GCC compiles in milliseconds. No file may contain its end mark. The array is
# not constexpr, because clang limits the steps in which it may find the length of a literal.
set(mark "netsim_asset")
set(code "#include \"sim/report/page/page_assets.h\"\n\nnamespace netsim {\n\nstd::span<const PageAsset> page_assets() {\n")
string(APPEND code "  static const PageAsset kAssets[] = {\n")
foreach(file IN LISTS FILES)
  file(READ "${file}" text)
  string(FIND "${text}" ")${mark}\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${file} contains )${mark}\", which ends a string in the generated source")
  endif()
  cmake_path(GET file FILENAME name)
  string(APPEND code "    {\"${name}\", R\"${mark}(${text})${mark}\"},\n")
endforeach()
string(APPEND code "  };\n  return kAssets;\n}\n\n}  // namespace netsim\n")
file(WRITE "${OUTPUT}" "${code}")
