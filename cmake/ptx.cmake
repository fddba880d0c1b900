# SPDX-License-Identifier: BSD-3-Clause
# NVIDIA's PTX of the kernels in OpenCL C, by clang, which needs nothing of NVIDIA for it. Without clang a
# build has no kernels for devices of kind cuda, and says so where one is asked for.
find_program(BATCHPLANE_CLANG NAMES clang-16 clang-17 clang-18 clang-19 clang DOC "makes PTX of kernels")
set(BP_ON_PTX ${CMAKE_SOURCE_DIR}/src/offload/cuda/opencl_on_ptx.clh)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${BP_ON_PTX})

# bp_ptx(KERNEL HEADER): a/x.cl becomes kernels/a/x.ptx.h, a text that is empty without clang.
function(bp_ptx kernel header)
  string(REGEX REPLACE "\\.cl$" ".ptx.h" to "${CMAKE_BINARY_DIR}/kernels/${header}")
  if(EXISTS ${to} AND NOT ${CMAKE_SOURCE_DIR}/${kernel} IS_NEWER_THAN ${to} AND NOT ${BP_ON_PTX} IS_NEWER_THAN ${to}
     AND NOT ${CMAKE_CURRENT_FUNCTION_LIST_FILE} IS_NEWER_THAN ${to} AND "${BP_PTX_BY}" STREQUAL "${BATCHPLANE_CLANG}")
    return()
  endif()
  set(text "")
  if(BATCHPLANE_CLANG)
    # Numbers below 2^-126 are kept, and products are added as they are written.
    execute_process(
      COMMAND ${BATCHPLANE_CLANG} -x cl -cl-std=CL1.2 -cl-no-stdinc --target=nvptx64-nvidia-cuda
        -Xclang -target-cpu -Xclang sm_60 -ffp-contract=off -O3 -S -o -
        -include ${BP_ON_PTX} ${CMAKE_SOURCE_DIR}/${kernel}
      OUTPUT_VARIABLE text ERROR_VARIABLE said RESULT_VARIABLE failed)
    if(failed)
      message(WARNING "no PTX of ${kernel}: ${said}")
      set(text "")
      set(BP_PTX_FAILED TRUE PARENT_SCOPE)
    endif()
  endif()
  # How many work items a group has, 64 where none of them share an input: for as many as there may be at most, the
  # driver's compiler saves registers, and one load waits for the one before it.
  file(STRINGS ${CMAKE_SOURCE_DIR}/${kernel} items REGEX "^#define LANES [0-9]+")
  string(REGEX REPLACE "^#define LANES ([0-9]+).*" "\\1" items "${items}")
  if(NOT items)
    set(items 64)
  endif()
  string(REPLACE "\n)\n{" "\n)\n.maxntid ${items}, 1, 1\n.minnctapersm 1\n{" text "${text}")
  file(WRITE ${to} "R\"ptx(${text})ptx\"\n")
endfunction()

# Once it is found, or gone, or after it has failed, all are made anew.
macro(bp_ptx_done)
  set(BP_PTX_BY "${BATCHPLANE_CLANG}" CACHE INTERNAL "what made PTX last")
  if(BP_PTX_FAILED)
    set(BP_PTX_BY "" CACHE INTERNAL "what made PTX last")
  endif()
endmacro()
