// SPDX-License-Identifier: BSD-3-Clause
// esp_cases.cc - inputs for fuzzing and benchmarking ESP encryption and decryption.
#include "cases/case_tools.h"
#include "modules/esp/esp_header.h"
#include "modules/esp/esp_suite.h"

namespace batchplane::cases {
namespace {

constexpr uint32_t kProtocolByte = net::kEthBytes + offsetof(net::Ipv4, protocol);

Dict sa_of(uint32_t id, const std::string& suite) {
  return {{"id", id},
          {"spi", 0x1000 + id},
          {"suite", suite},
          {"local", "192.0.2.1"},
          {"remote", net::format_ipv4((198U << 24) + id)}};
}
Dict sas_of(uint32_t n, const std::string& suite) {
  List sas;
  for (uint32_t id = 0; id < n; ++id) sas.push_back(sa_of(id, suite));
  return {{"sas", sas}, {"test_keys", true}};
}

// No replay window, since the same packets are sent again and again.
Dict receiving(Dict params) {
  List sas;
  for (const Value& item : params["sas"].as_list()) {
    Dict sa = item.as_dict();
    sa["remote"] = sa["local"];
    sa.erase("local");
    sas.push_back(std::move(sa));
  }
  params["sas"] = sas;
  params["replay_window_pkts"] = 0;
  return params;
}

void add_esp_costs(std::vector<CostCase>& all) {
  for (const esp::Suite& suite : esp::suites()) {
    const std::string name = suite.name;
    CostCase encrypt = plain("esp_encrypt, " + name, "esp_encrypt", sas_of(16, name));
    encrypt.check = [](Packet& pkt, uint32_t, uint32_t) {
      const std::string wrong = expect_good_sum(pkt);
      return wrong.empty() ? expect_byte(pkt, kProtocolByte, net::kProtoEsp) : wrong;
    };
    CostCase decrypt = plain("esp_decrypt, " + name, "esp_decrypt", receiving(sas_of(16, name)));
    decrypt.gates = 3;
    decrypt.before_kind = "esp_encrypt";
    decrypt.before_params = sas_of(16, name);
    decrypt.check = [](Packet& pkt, uint32_t gate, uint32_t) {
      const std::string wrong = expect_gate(gate, 0);
      return wrong.empty() ? expect_byte(pkt, kProtocolByte, net::kProtoUdp) : wrong;
    };
    all.push_back(std::move(encrypt));
    all.push_back(std::move(decrypt));
  }
}

// Changes keys by changing ids, algorithms, tunnel endpoints, and everything at once.
void edit_sas(Module& module, uint32_t which, uint32_t id) {
  static constexpr const char* kNames[] = {"aes-128-gcm", "chacha20-poly1305", "aes-256-cbc-sha1",
                                           "aes-128-cbc-sha256"};
  Dict sa = sa_of(id, kNames[id % 4]);
  if (module.show().as_dict().count("exhausted_sas") == 0) sa.erase("local");
  sa["esn"] = which % 2 == 0;
  if (which <= 3) module.command("add", sa);
  if (which == 4) module.command("delete", Dict{{"id", id}});
  if (which == 5) module.command("replace", Dict{{"sas", List{sa}}});
  if (which == 6) module.command("reload", Dict{});
  if (which == 7) module.command("list", Dict{});
}

const AddCases kEspCases{
    {.fuzz = {{"esp_encrypt",
               R"({"test_keys": true, "df": "set", "sas": [
                   {"id": 0, "spi": 4096, "suite": "aes-128-gcm", "remote": "192.0.2.2",
                    "local": "192.0.2.1", "udp": true},
                   {"id": 1, "spi": 4097, "suite": "aes-128-cbc-sha1", "remote": "2001:db8::2",
                    "local": "2001:db8::1", "udp": true, "esn": true, "vrf": 2}]})",
               1, edit_sas},
              {"esp_encrypt",
               R"({"test_keys": true, "by": "mark", "dscp": 46, "sas": [
                   {"id": 0, "spi": 4096, "suite": "chacha20-poly1305", "remote": "192.0.2.2",
                    "local": "192.0.2.1", "first_sequence": 4294967290}]})"},
              {"esp_decrypt",
               R"({"test_keys": true, "sas": [
                   {"id": 1, "spi": 4096, "suite": "aes-128-gcm", "vrf": 1},
                   {"id": 2, "spi": 4097, "suite": "aes-128-cbc-sha1", "esn": true},
                   {"id": 3, "spi": 4098, "suite": "chacha20-poly1305",
                    "remote": "192.0.2.2"}]})",
               3, edit_sas},
              {"esp_decrypt",
               R"({"test_keys": true, "udp_port": 53, "replay_window_pkts": 0, "sas": [
                   {"id": 1, "spi": 4096, "suite": "aes-256-cbc-sha256"}]})"}},
     .cost = add_esp_costs}};

}  // namespace
}  // namespace batchplane::cases
