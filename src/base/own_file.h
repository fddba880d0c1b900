// SPDX-License-Identifier: BSD-3-Clause
// own_file.h - opens files to write: only their owner reads them, and no link leads elsewhere. A daemon
// of root would otherwise overwrite whatever somebody else made the name point to.
#pragma once

#include <cstdio>
#include <string>

namespace batchplane {

// Makes the file with mode 0600, or empties the one that is there and is this user's. The descriptor,
// or -1 after saying why not.
int create_own_file(const std::string& path, std::string& why_not);
// The same as a stream; nullptr after saying why not.
std::FILE* create_own_stream(const std::string& path, std::string& why_not);

// Empty when create_own_file() would not be refused by what is there now.
std::string why_no_own_file(const std::string& path);

}  // namespace batchplane
