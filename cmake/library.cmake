# SPDX-License-Identifier: BSD-3-Clause
# The controllers as a static library with its headers, for programs that run batches of their own (docs/library.md).
# Beside the engine it is made of the engine's objects; alone it compiles the same sources itself, without DPDK.

set(BP_LIBRARY_FOLDERS base exec slo)
set(sources "")
foreach(folder ${BP_LIBRARY_FOLDERS})
  if(TARGET bp_${folder})
    list(APPEND sources $<TARGET_OBJECTS:bp_${folder}>)
  else()
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
    list(FILTER found EXCLUDE REGEX "_(test|bench|cases)\\.cc$")
    list(APPEND sources ${found})
  endif()
endforeach()
add_library(batchplane_slo STATIC ${sources})
if(NOT TARGET bp_slo)
  bp_unity(batchplane_slo)
endif()
set_target_properties(batchplane_slo PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME slo)
target_compile_features(batchplane_slo PUBLIC cxx_std_20)
target_compile_options(batchplane_slo PRIVATE -march=x86-64-v3)
target_include_directories(batchplane_slo
  PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src> $<INSTALL_INTERFACE:include/batchplane>)

install(TARGETS batchplane_slo EXPORT batchplane-slo ARCHIVE DESTINATION lib COMPONENT slo)
install(EXPORT batchplane-slo NAMESPACE batchplane:: FILE batchplane-slo-config.cmake
  DESTINATION lib/cmake/batchplane-slo COMPONENT slo)
foreach(folder ${BP_LIBRARY_FOLDERS})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/${folder} DESTINATION include/batchplane COMPONENT slo
    FILES_MATCHING PATTERN "*.h" PATTERN "*.inl" PATTERN "*_test_util.h" EXCLUDE)
endforeach()
