// SPDX-License-Identifier: BSD-3-Clause
// messages.cc - finds the line of the user's file that an error refers to.
#include "app/wire/messages.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <new>

#include "core/graph/graph.h"

namespace batchplane::app {
namespace {

// Removes and returns " (file:line)" of a key such as "modules.a (f.yaml:3).mend_checksum".
std::string cut_place(std::string& key) {
  const size_t begin = key.find(" (");
  const size_t end = begin == std::string::npos ? begin : key.find(')', begin);
  if (end == std::string::npos) return "";
  std::string place = key.substr(begin + 2, end - begin - 2);
  key.erase(begin, end - begin + 1);
  return place;
}

std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20; }, ' ');
  return text;
}

}  // namespace

Located locate(const ConfigError& error, const std::map<std::string, std::string>& source_map) {
  Located located{"", error.where(), on_one_line(error.what()), on_one_line(error.fix())};
  const std::string enclosing = cut_place(located.key);
  const auto it = source_map.find(located.key);
  located.place = it == source_map.end() ? enclosing : it->second;
  located.key = on_one_line(located.key);
  return located;
}

std::string error_line(const ConfigError& error,
                       const std::map<std::string, std::string>& source_map) {
  const Located at = locate(error, source_map);
  std::string line = at.place.empty() ? "" : at.place + ": ";
  if (!at.key.empty()) line += at.key + ": ";
  line += at.message;
  if (!at.fix.empty()) line += " (" + at.fix + ")";
  return line;
}

List errors_value(const std::vector<ConfigError>& errors,
                  const std::map<std::string, std::string>& source_map) {
  List list;
  for (const ConfigError& error : errors) {
    const Located at = locate(error, source_map);
    list.emplace_back(Dict{{"where", at.place.empty() ? at.key : at.key + " (" + at.place + ")"},
                           {"message", at.message},
                           {"fix", at.fix}});
  }
  return list;
}

std::vector<ConfigError> errors_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const ConfigErrors& all) {
    return all.errors;
  } catch (const ConfigError& one) {
    return {one};
  } catch (const std::bad_alloc&) {
    return {ConfigError("there is not enough memory for this", "", "make it smaller")};
  } catch (const std::exception& other) {
    return {ConfigError(std::string("it failed: ") + other.what())};
  }
  return {};
}

void log_line(const std::string& text) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char stamp[64];
  const size_t n = strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &parts);
  char millis[8];
  snprintf(millis, sizeof millis, ".%03ld ", now.tv_nsec / 1'000'000 % 1000);
  const std::string line = std::string(stamp, n) + millis + on_one_line(text) + "\n";
  // A failing log is no reason to stop.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace batchplane::app
