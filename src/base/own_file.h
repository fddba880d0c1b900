// SPDX-License-Identifier: BSD-3-Clause
// own_file.h - creates files that only their owner can read, and follows no links. Otherwise a daemon running
// as root could be made to overwrite any file by a link that somebody else planted.
#pragma once

#include <cstdio>
#include <string>

namespace batchplane {

// Creates the file with mode 0600, or truncates an existing one of this user. Returns the descriptor, or -1
// and the reason in why_not.
int create_own_file(const std::string& path, std::string& why_not);
// The same as a stream; nullptr on failure, with the reason in why_not.
std::FILE* create_own_stream(const std::string& path, std::string& why_not);

// The reason why create_own_file() would refuse an existing file; empty if it would not.
std::string why_no_own_file(const std::string& path);

}  // namespace batchplane
