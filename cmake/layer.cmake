# easydel_layer(text USES weights config base LIBS PkgConfig::yaml): the folder text/ becomes the object library
# easydel_text. USES is all that it may include (cmake/check_layers.cmake holds the #include lines to that).
# TORCH gives it torch's headers and the shared precompiled header, and puts it into libeasydel_core.so instead of
# libeasydel_base.so. APART: it is compiled elsewhere. SPLIT: the files named *_core.cpp are such a TORCH layer, the others are not. In every TORCH layer
# the bodies of faces (*_config.cpp, *_configs.cpp, *tables.cpp) need no torch and go into libeasydel_base.so.
function(easydel_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;SPLIT;APART" "" "USES;LIBS")
  set_property(GLOBAL APPEND PROPERTY easydel_layers "${name}:${arg_USES}")
  if(arg_APART)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  # The tables of config structs are read once in a run: what they cost is the time to compile them.
  set(tables ${sources})
  list(FILTER tables INCLUDE REGEX "/(method_)?tables\\.cpp$")
  set_source_files_properties(${tables} PROPERTIES COMPILE_OPTIONS -O1)
  set(core_sources ${sources})
  if(arg_SPLIT)
    list(FILTER core_sources INCLUDE REGEX "_core\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_core\\.cpp$")
    _easydel_layer_target(${name}_core ON "${core_sources}" "${arg_LIBS}")
  endif()
  if(arg_TORCH)
    set(face_sources ${sources})
    list(FILTER face_sources INCLUDE REGEX "(_configs?|tables)\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "(_configs?|tables)\\.cpp$")
    _easydel_layer_target(${name}_faces OFF "${face_sources}" "")
  endif()
  _easydel_layer_target(${name} ${arg_TORCH} "${sources}" "${arg_LIBS}")
endfunction()

function(_easydel_layer_target name torch sources libs)
  if(NOT sources)
    return()  # a layer that has no code yet
  endif()
  add_library(easydel_${name} OBJECT ${sources})
  target_link_libraries(easydel_${name} PUBLIC easydel_options PRIVATE ${libs})
  add_dependencies(easydel_${name} easydel_check_layers)
  if(torch)
    target_link_libraries(easydel_${name} PUBLIC easydel_torch)
    target_compile_options(easydel_${name} PRIVATE -fpch-preprocess)
    target_precompile_headers(easydel_${name} REUSE_FROM easydel_torch_pch)
    set_property(GLOBAL APPEND PROPERTY easydel_core_objects easydel_${name})
    set_property(GLOBAL APPEND PROPERTY easydel_core_libs ${libs})
  else()
    set_property(GLOBAL APPEND PROPERTY easydel_base_objects easydel_${name})
    set_property(GLOBAL APPEND PROPERTY easydel_base_libs ${libs})
  endif()
endfunction()

# Runs before any layer compiles; fails on an include that the USES lists do not allow, and on a folder under
# src/easydel that is no layer. Call once, before the layers are defined; the lists are read when it runs.
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
