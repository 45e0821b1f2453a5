# Small files compile faster together: most of a compile is reading headers. easydel_batches() writes batch files that
# include up to `size` sources of one folder each, by paths relative to `root`, so that ccache shares their objects between
# checkouts. Names in anonymous namespaces must then differ within a folder; -D EASYDEL_UNITY=OFF compiles file by file.
#   result   the sources that a target compiles instead of `sources`
#   target   names the batch files
#   size     files in a batch; empty: nothing is batched
#   alone    files that are not batched
function(easydel_batches result target root sources size alone)
  if(NOT EASYDEL_UNITY OR NOT size)
    set(${result} "${sources}" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(root ${root} ABSOLUTE)
  set(out "")
  set(folders "")
  foreach(source IN LISTS sources)
    if(source IN_LIST alone)
      list(APPEND out ${source})
      continue()
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" key)
    list(APPEND folders ${key})
    list(APPEND in_${key} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(number 0)
  foreach(key IN LISTS folders)
    # Equal batches rather than full ones and a rest.
    list(LENGTH in_${key} count)
    math(EXPR parts "(${count} + ${size} - 1) / ${size}")
    foreach(part RANGE 1 ${parts})
      math(EXPR begin "${count} * (${part} - 1) / ${parts}")
      math(EXPR length "${count} * ${part} / ${parts} - ${begin}")
      list(SUBLIST in_${key} ${begin} ${length} batch)
      set(text "")
      foreach(source IN LISTS batch)
        file(RELATIVE_PATH path ${root} ${source})
        string(APPEND text "#include \"${path}\"\n")
      endforeach()
      math(EXPR number "${number} + 1")
      set(file ${CMAKE_BINARY_DIR}/batches/${target}_${number}.cpp)
      file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
      # That warning is about headers, which it takes every included file for.
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
      list(APPEND out ${file})
    endforeach()
  endforeach()
  set(${result} "${out}" PARENT_SCOPE)
endfunction()

# compile_commands.json, which editors read, gets an entry for each of `sources` instead of those of `target`: without
# batches, and without the precompiled header, because clang cannot read g++'s. The entries are those of the target
# <target>_files, which nothing builds; it needs the same options as `target`.
function(easydel_entries_for_editors target sources)
  add_library(${target}_files OBJECT EXCLUDE_FROM_ALL ${sources})
  set_target_properties(${target} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
endfunction()
