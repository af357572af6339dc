# Installs the program, the library with its headers, and the files that find_package(netsim) and pkg-config read. The
# tree may be moved as a whole afterwards.
include(CMakePackageConfigHelpers)

install(TARGETS netsim)
install(TARGETS netsim_library EXPORT netsim)
# All headers but those of the program: a component may need any of them.
install(DIRECTORY sim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/netsim FILES_MATCHING PATTERN "*.h"
        REGEX "sim/main/[a-z_]+\\.h$" EXCLUDE)
install(FILES ${interface_header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/netsim/sim/core)
install(DIRECTORY configs traces DESTINATION ${CMAKE_INSTALL_DATADIR}/netsim)

# The program itself writes its manual page and the completions of shells.
set(help_directory ${PROJECT_BINARY_DIR}/generated/help)
install(CODE "
  file(MAKE_DIRECTORY \"${help_directory}\")
  function(write_help file)
    execute_process(COMMAND \"$<TARGET_FILE:netsim>\" \${ARGN} OUTPUT_FILE \"${help_directory}/\${file}\"
                    COMMAND_ERROR_IS_FATAL ANY)
  endfunction()
  write_help(netsim.1 --man)
  write_help(netsim --completion bash)
  write_help(_netsim --completion zsh)")
install(FILES ${help_directory}/netsim.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${help_directory}/netsim DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${help_directory}/_netsim DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/netsim)
install(EXPORT netsim NAMESPACE netsim:: FILE netsimConfig.cmake DESTINATION ${package_directory})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/netsimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/netsimConfigVersion.cmake DESTINATION ${package_directory})

set(pkgconfig_directory ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig ${CMAKE_INSTALL_PREFIX}/${pkgconfig_directory} ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/netsim.pc.in ${PROJECT_BINARY_DIR}/netsim.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/netsim.pc DESTINATION ${pkgconfig_directory})
