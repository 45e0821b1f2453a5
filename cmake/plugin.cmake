# easydel_plugin_abi(source target): generates easydel/elarge/plugin_abi.h, which says which headers a plug-in was
# compiled with, and lets `source` of `target` include it.
function(easydel_plugin_abi source target)
  if(NOT TARGET ${target})
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/generated)
  set(header ${folder}/easydel/elarge/plugin_abi.h)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -D root=${CMAKE_CURRENT_SOURCE_DIR} -D output=${header} -D version=${PROJECT_VERSION}
            -P ${PROJECT_SOURCE_DIR}/cmake/write_plugin_abi.cmake
    DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/cmake/write_plugin_abi.cmake
    COMMENT "Describing the headers for plug-ins" VERBATIM)
  add_custom_target(easydel_plugin_abi DEPENDS ${header})
  add_dependencies(${target} easydel_plugin_abi)
  set_source_files_properties(${source} PROPERTIES INCLUDE_DIRECTORIES ${folder} OBJECT_DEPENDS ${header})
endfunction()
