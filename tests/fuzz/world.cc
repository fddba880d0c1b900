// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/world.h"

#include <stdlib.h>

#include <stdexcept>

#include "app/wire/json_value.h"
#include "base/net6.h"
#include "ports/port_kinds.h"

namespace batchplane::fuzz {
namespace {

constexpr const char* kFolderMark = "${TMP}";

void add_interface(Environment& env, const char* name, const char* address, const char* address6) {
  const auto index = static_cast<uint16_t>(env.interfaces.size());
  Interface& added = env.interfaces.emplace_back();
  added.name = name;
  added.port = "null";
  added.index = index;
  added.mac = {2, 0, 0, 0, 0, static_cast<uint8_t>(index + 1)};
  added.addresses = {*net::parse_interface_address(address)};
  added.addresses6 = {*net::parse_interface_address6(address6),
                      {net::link_local_of(added.mac), 64}};
}

}  // namespace

std::unique_ptr<Environment> make_environment() {
  auto env = std::make_unique<Environment>();
  env->ports["null"] = make_port({"null", "null", {}}, *env);
  env->ports[kLoopPort] =
      make_port({kLoopPort, "ring", {{"size_pkts", 256}, {"sends_to", "itself"}}}, *env);
  add_interface(*env, "lan", "10.0.1.1/24", "2001:db8:1::1/64");
  add_interface(*env, "wan", "10.0.2.1/24", "2001:db8:2::1/64");
  return env;
}

Dict params_of(const cases::FuzzCase& one, const std::filesystem::path& folder) {
  std::string text = one.params;
  if (const size_t at = text.find(kFolderMark); at != std::string::npos) {
    text.replace(at, std::char_traits<char>::length(kFolderMark), folder.string());
  }
  return app::parse_json(text, one.kind).as_dict();
}

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "batchplane-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace batchplane::fuzz
