# cmake --install build --prefix DIR: the program, its libraries and headers, and a package for find_package(easydel), which
# plug-ins are built with.
include(GNUInstallDirs)
install(TARGETS easydel RUNTIME DESTINATION bin)
install(TARGETS easydel_base_so LIBRARY DESTINATION lib)
if(TARGET easydel_core_so)
  install(TARGETS easydel_core_so LIBRARY DESTINATION lib)
  install(FILES ${CMAKE_BINARY_DIR}/generated/easydel/models/plugin_abi.h DESTINATION include/easydel/models)
endif()
install(DIRECTORY src/easydel DESTINATION include FILES_MATCHING PATTERN "*.h")
configure_file(cmake/easydelConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/easydelConfig.cmake @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/generated/easydelConfig.cmake cmake/FindTorchWheel.cmake DESTINATION lib/cmake/easydel)
