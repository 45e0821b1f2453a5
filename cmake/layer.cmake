# easydel_layer(text USES weights config base LIBS PkgConfig::yaml): the folder text/ with its rooms (the folders in it)
# becomes the object library easydel_text. USES is all that it may include (cmake/check_layers.cmake holds the #include
# lines to that).
#   TORCH    the layer has torch's headers, and goes into libeasydel_core.so instead of libeasydel_base.so
#   SPLIT    the files named *_core.cpp are such a TORCH layer, the others are not
#   APART    the layer is compiled elsewhere; ELSEWHERE names files of a layer that are
#   LIGHT    the layer computes nothing that takes time: it is compiled with -O1
#   BATCH n  up to n files of one folder are compiled together (see cmake/batches.cmake); ALONE names the files that are not
# In every TORCH layer the bodies of faces (*_config.cpp, *_configs.cpp, *tables.cpp) need no torch and go into
# libeasydel_base.so; they are LIGHT.
include(${CMAKE_CURRENT_LIST_DIR}/batches.cmake)

function(easydel_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;SPLIT;APART;LIGHT" "BATCH" "USES;LIBS;ALONE;ELSEWHERE")
  set_property(GLOBAL APPEND PROPERTY easydel_layers "${name}:${arg_USES}")
  if(arg_APART)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  list(TRANSFORM arg_ALONE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${name}/)
  list(TRANSFORM arg_ELSEWHERE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${name}/)
  list(REMOVE_ITEM sources ${arg_ELSEWHERE})
  if(arg_SPLIT)
    set(core_sources ${sources})
    list(FILTER core_sources INCLUDE REGEX "_core\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_core\\.cpp$")
    _easydel_layer_target(${name}_core ON ${arg_LIGHT} "${core_sources}" "${arg_LIBS}" "${arg_BATCH}" "${arg_ALONE}")
  endif()
  if(arg_TORCH)
    set(face_sources ${sources})
    list(FILTER face_sources INCLUDE REGEX "(_configs?|tables)\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "(_configs?|tables)\\.cpp$")
    _easydel_layer_target(${name}_faces OFF ON "${face_sources}" "" "${arg_BATCH}" "${arg_ALONE}")
  endif()
  _easydel_layer_target(${name} ${arg_TORCH} ${arg_LIGHT} "${sources}" "${arg_LIBS}" "${arg_BATCH}" "${arg_ALONE}")
endfunction()

function(_easydel_layer_target name torch light sources libs batch alone)
  if(NOT sources)
    return()  # a layer that has no code yet
  endif()
  easydel_batches(compiled easydel_${name} ${CMAKE_CURRENT_SOURCE_DIR}/.. "${sources}" "${batch}" "${alone}")
  add_library(easydel_${name} OBJECT ${compiled})
  set(pch base)
  if(torch)
    set(pch torch)
  endif()
  easydel_entries_for_editors(easydel_${name} "${sources}")
  foreach(target easydel_${name} easydel_${name}_files)
    target_link_libraries(${target} PUBLIC easydel_options PRIVATE ${libs})
    add_dependencies(${target} easydel_check_layers)
    if(torch)
      target_link_libraries(${target} PUBLIC easydel_torch)
    endif()
    target_compile_options(${target} PRIVATE $<$<BOOL:${light}>:-O1>)
  endforeach()
  easydel_use_precompiled_header(easydel_${name} ${pch})
  if(torch)
    set_property(GLOBAL APPEND PROPERTY easydel_core_objects easydel_${name})
    set_property(GLOBAL APPEND PROPERTY easydel_core_libs ${libs})
  else()
    set_property(GLOBAL APPEND PROPERTY easydel_base_objects easydel_${name})
    set_property(GLOBAL APPEND PROPERTY easydel_base_libs ${libs})
  endif()
endfunction()

# Runs before any layer is compiled. Fails if an include is not allowed by the USES lists, and if a folder under src/easydel
# is not a layer. Call it once, before the layers are defined; the lists are read when it runs.
function(easydel_check_layers_target)
  add_custom_target(easydel_check_layers
    COMMAND ${CMAKE_COMMAND} -D layers_file=${CMAKE_BINARY_DIR}/layers.txt -D root=${CMAKE_CURRENT_SOURCE_DIR}
            -P ${PROJECT_SOURCE_DIR}/cmake/check_layers.cmake
    COMMENT "Checking the layering" VERBATIM)
endfunction()
function(easydel_write_layers)
  get_property(layers GLOBAL PROPERTY easydel_layers)
  string(REPLACE ";" " " layers "${layers}")
  # "base: config:base weights:base ..." one layer a line
  string(REGEX REPLACE " ([a-z_]+):" "\n\\1:" layers "${layers}")
  file(WRITE ${CMAKE_BINARY_DIR}/layers.txt "${layers}\n")
endfunction()
