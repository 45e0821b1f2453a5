# Finds the Arrow C++ libraries and headers inside an installed PyPI wheel of pyarrow, without importing it.
#   in : ArrowWheel_DIR (the folder site-packages/pyarrow); else next to TorchWheel_DIR, else the one of TorchWheel_PYTHON
#   out: target arrow::wheel; ArrowWheel_VERSION, ArrowWheel_DIR
if(NOT ArrowWheel_DIR AND TorchWheel_DIR AND IS_DIRECTORY "${TorchWheel_DIR}/../pyarrow/include/arrow")
  get_filename_component(ArrowWheel_DIR "${TorchWheel_DIR}/../pyarrow" ABSOLUTE)
endif()
if(NOT ArrowWheel_DIR AND TorchWheel_PYTHON)
  execute_process(
    COMMAND ${TorchWheel_PYTHON} -c
      "import importlib.util as u; s=u.find_spec('pyarrow'); print(s.submodule_search_locations[0] if s else '', end='')"
    OUTPUT_VARIABLE ArrowWheel_DIR ERROR_QUIET)
endif()
if(EXISTS "${ArrowWheel_DIR}/include/arrow/util/config.h")
  file(STRINGS "${ArrowWheel_DIR}/include/arrow/util/config.h" _line REGEX "#define ARROW_VERSION_STRING")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ArrowWheel_VERSION "${_line}")
endif()
# The wheel has no plain libarrow.so: the file names include the version.
file(GLOB ArrowWheel_ARROW "${ArrowWheel_DIR}/libarrow.so.*")
file(GLOB ArrowWheel_PARQUET "${ArrowWheel_DIR}/libparquet.so.*")
# Part of libarrow in older wheels.
file(GLOB ArrowWheel_S3 "${ArrowWheel_DIR}/libarrow_s3.so.*")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ArrowWheel REQUIRED_VARS ArrowWheel_DIR ArrowWheel_ARROW ArrowWheel_PARQUET
  VERSION_VAR ArrowWheel_VERSION
  REASON_FAILURE_MESSAGE "install it with `pip install pyarrow` or set EASYDEL_ARROW")

if(ArrowWheel_FOUND AND NOT TARGET arrow::wheel)
  add_library(arrow::wheel INTERFACE IMPORTED)
  target_include_directories(arrow::wheel SYSTEM INTERFACE "${ArrowWheel_DIR}/include")
  target_link_options(arrow::wheel INTERFACE "LINKER:--disable-new-dtags" "LINKER:-rpath,${ArrowWheel_DIR}")
  target_link_libraries(arrow::wheel INTERFACE ${ArrowWheel_PARQUET} ${ArrowWheel_S3} ${ArrowWheel_ARROW})
endif()
