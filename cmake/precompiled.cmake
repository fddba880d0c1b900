# SPDX-License-Identifier: BSD-3-Clause
# The C++ library's and DPDK's headers, parsed once: they are most of what compiling a file costs. One
# precompiled header for each set of flags. What includes too little is still found: clang's tools, which
# look at every changed file, have none of these.
set(BP_PCH_HEADERS
  <algorithm> <array> <atomic> <charconv> <cmath> <cstdint> <cstring> <deque> <functional> <map> <memory>
  <mutex> <optional> <set> <span> <sstream> <string> <thread> <unordered_map> <utility> <variant> <vector>)

# bp_precompile(NAME FLAGS HEADERS... TARGETS...): HEADERS, and the library's, for targets that link FLAGS.
function(bp_precompile name flags)
  cmake_parse_arguments(arg "" "" "HEADERS;TARGETS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE ${flags})
  set_target_properties(${name} PROPERTIES BP_PCH ON)
  target_precompile_headers(${name} PRIVATE ${BP_PCH_HEADERS} ${arg_HEADERS})
  foreach(target ${name} ${arg_TARGETS})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "OBJECT_LIBRARY|EXECUTABLE")
      # Programs would be -fPIE, and the header is -fPIC. -fpch-preprocess lets ccache work with it.
      target_compile_options(${target} PRIVATE -fPIC -Winvalid-pch
        $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
      if(NOT target STREQUAL name)
        target_precompile_headers(${target} REUSE_FROM ${name})
      endif()
    endif()
  endforeach()
endfunction()

set(test_headers "")
if(BATCHPLANE_TESTS)
  set(test_headers <gtest/gtest.h>)
endif()
set(packet_headers $<$<BOOL:${BATCHPLANE_DPDK}>:<rte_mbuf.h$<ANGLE-R>>)
set(folders .)
if(BATCHPLANE_TESTS)
  list(APPEND folders tests)
endif()
if(BATCHPLANE_BENCH)
  list(APPEND folders bench)
endif()
set(all_targets "")
foreach(folder ${folders})
  get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  list(APPEND all_targets ${found})
endforeach()
if(TARGET bp_fuzz)
  list(APPEND all_targets bp_fuzz)
endif()

# Wants rte_vect.h as C, which rte_mbuf.h includes as C++.
set_source_files_properties(src/ports/eal_dpdk.cc PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)

if(BATCHPLANE_SANITIZE)
  # One for all: GoogleTest's target defines what a header built with it wants everywhere.
  target_compile_definitions(bp_flags INTERFACE GTEST_HAS_PTHREAD=1)
  bp_precompile(bp_pch_all "bp_flags;GTest::gtest" HEADERS ${test_headers} ${packet_headers}
    TARGETS ${all_targets})
else()
  set(tests ${all_targets})
  list(FILTER tests INCLUDE REGEX "^test_")
  set(pure ${BP_PURE})
  list(TRANSFORM pure PREPEND bp_)
  set(others ${all_targets})
  list(REMOVE_ITEM others ${tests} ${pure} batchplaned)
  bp_precompile(bp_pch_pure bp_pure_flags TARGETS ${pure})
  bp_precompile(bp_pch_packets bp_flags HEADERS ${packet_headers} TARGETS ${others})
  if(BATCHPLANE_TESTS)
    bp_precompile(bp_pch_tests "bp_flags;GTest::gtest" HEADERS ${test_headers} ${packet_headers}
      TARGETS ${tests})
    foreach(target bp_pch_tests ${tests})
      # Nothing here is measured: time to build matters more.
      target_compile_options(${target} PRIVATE -O1)
    endforeach()
  endif()
endif()
