// SPDX-License-Identifier: BSD-3-Clause
// inspect.cc - looking into packets: the automaton with eight packets side by side against one after the
// other and against Hyperscan; MD5 in lanes against OpenSSL's; and the modules over what they call.
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/rng.h"
#include "common/environment.h"
#include "common/lone_module.h"
#include "common/report.h"
#include "core/packet/packet_pool.h"
#include "modules/inspect/digest_md5.h"
#include "modules/inspect/dpi_ruleset.h"

namespace {

using batchplane::Dict;
using batchplane::Packet;
using batchplane::inspect::has_md5_code;
using batchplane::inspect::md5_by;
using batchplane::inspect::Md5Code;
using batchplane::inspect::Text;
namespace dpi = batchplane::dpi;
namespace net = batchplane::net;

constexpr uint32_t kMemoryMb = 512;
constexpr uint32_t kBatchPkts = 32;
constexpr uint32_t kHeaderBytes = net::kEthBytes + net::kIpv4Bytes + net::kUdpBytes;
constexpr uint32_t kPayloadBytes[] = {64, 1472};
constexpr uint32_t kWords = 3642;
constexpr double kMostNs = 15;  // of dpi over its engine
constexpr double kLeastGain = 3.5;
constexpr double kLeastOverOpenssl = 3.5;
constexpr uint64_t kMaxTableBytes = 1 << 30;

// Like those of lists of attacks: from 4 to 20 letters and a few other characters.
std::vector<std::string> words() {
  batchplane::Rng rng(1);
  std::set<std::string> all;
  while (all.size() < kWords) {
    std::string word;
    for (uint32_t n = 4 + rng.below(17); n > 0; --n) {
      word += "etaoinshrdlucmfwypvbgkjqxz_/.-(="[std::min(rng.below(32), rng.below(32))];
    }
    all.insert(word);
  }
  return {all.begin(), all.end()};
}

// Text made of beginnings of the words, so that a search goes deep, and seldom to an end.
std::vector<uint8_t> payload_of(uint32_t n_bytes, const std::vector<std::string>& all,
                                batchplane::Rng& rng) {
  std::vector<uint8_t> bytes;
  while (bytes.size() < n_bytes) {
    const std::string& word = all[rng.below(kWords)];
    bytes.insert(bytes.end(), word.begin(), word.begin() + 3);
    bytes.push_back('~');
  }
  bytes.resize(n_bytes);
  return bytes;
}

struct Nobody final : dpi::PatternSink {
  void found(uint32_t /*pattern*/) noexcept override { ++n; }
  uint64_t n = 0;
};

class Packets {
 public:
  Packets(batchplane::PacketPool& pool, uint32_t payload_bytes,
          const std::vector<std::string>& all) {
    batchplane::Rng rng(payload_bytes);
    if (!pool.alloc_bulk(pkts.data(), kBatchPkts)) throw std::runtime_error("the pool is empty");
    for (uint32_t i = 0; i < kBatchPkts; ++i) {
      const std::vector<uint8_t> payload = payload_of(payload_bytes, all, rng);
      pkts[i]->reset(kHeaderBytes + payload_bytes);
      uint8_t* const data = pkts[i]->data();
      std::memset(data, 0, kHeaderBytes);
      uint8_t* const ip = data + net::kEthBytes;
      net::store16(data + net::kMacPairBytes, net::kTypeIpv4);
      ip[0] = net::Ipv4::kPlain;
      net::store16(ip + net::kIpTotalLength,
                   static_cast<uint16_t>(kHeaderBytes + payload_bytes - 14));
      ip[net::kIpProto] = net::kProtoUdp;
      std::copy(payload.begin(), payload.end(), data + kHeaderBytes);
      pkts[i]->meta() = {};
      texts[i] = {data + kHeaderBytes, payload_bytes};
    }
  }

  std::array<Packet*, kBatchPkts> pkts;
  std::array<Text, kBatchPkts> texts;
};

// All packets at once, of which none may be missing afterwards.
void run_all(bench::LoneModule& module, std::array<Packet*, kBatchPkts> pkts) {
  if (module.run(pkts.data(), kBatchPkts) != kBatchPkts) {
    throw std::runtime_error("a packet is missing");
  }
}

// `work` does n packets from text i on; called until a whole batch is done.
template <class Work>
bench::Contender contender(const std::string& name, uint32_t n, Work work) {
  return {.name = name, .run = [n, work](uint32_t n_batches) {
            for (uint32_t b = 0; b < n_batches; ++b) {
              for (uint32_t i = 0; i < kBatchPkts; i += n) work(i);
            }
            return uint64_t{n_batches} * kBatchPkts;
          }};
}

void measure_dpi(bench::Report& report, const bench::Options& options, Packets& packets,
                 const std::vector<std::string>& all, const std::string& label) {
  std::vector<dpi::Literal> literals;
  std::vector<dpi::Pattern> patterns;
  batchplane::List rules;
  for (const std::string& word : all) {
    literals.push_back({word, true});
    patterns.push_back({word, true});
    rules.push_back(
        Dict{{"id", static_cast<int64_t>(rules.size()) + 1}, {"content", word}, {"nocase", true}});
  }
  const dpi::Automaton automaton(literals, kMaxTableBytes, "bench");
  dpi::Hyperscan hyperscan(patterns, "bench");
  bench::LoneModule module("dpi", {{"rules", rules}}, 1);
  bool is_hit[kBatchPkts];
  Nobody nobody;
  const Text* const texts = packets.texts.data();
  const auto scan = [&, texts](uint32_t n) {
    return [&, texts, n](uint32_t i) { automaton.scan(texts + i, n, is_hit); };
  };
  const auto results = bench::run_interleaved(
      {contender("dpi, batch 32", kBatchPkts, [&](uint32_t) { run_all(module, packets.pkts); }),
       contender("automaton, batch 32", kBatchPkts, scan(kBatchPkts)),
       contender("automaton, batch 16", 16, scan(16)), contender("automaton, batch 1", 1, scan(1)),
       contender("one by one", kBatchPkts,
                 [&](uint32_t) { automaton.scan_singly(texts, kBatchPkts, is_hit); }),
       contender("hyperscan", 1, [&](uint32_t i) { hyperscan.scan(texts[i], nobody); })},
      options.trials, options.batches);
  report.rows(label + ", dpi, " + std::to_string(kWords) + " words", results);
  report.figure(label + ": dpi over its automaton", "ns/pkt",
                bench::paired_difference(results[0], results[1]), bench::Target{kMostNs});
  report.figure(label + ": batches of 1 over batches of 16", "x",
                bench::paired_ratio(results[3], results[2]), bench::Target{kLeastGain, false});
  report.note("the automaton has " + std::to_string(automaton.n_states()) + " states in " +
              std::to_string(automaton.table_bytes() >> 20) + " MB");
}

// One text after the other, with all that can be kept from text to text.
class Openssl {
 public:
  Openssl() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (EVP_DigestInit_ex(context_.get(), EVP_md5(), nullptr) != 1) {
      throw std::runtime_error("OpenSSL has no MD5");
    }
  }
  void md5(const Text& text, uint8_t* digest) {
    EVP_DigestInit_ex(context_.get(), nullptr, nullptr);
    EVP_DigestUpdate(context_.get(), text.data, text.len_bytes);
    EVP_DigestFinal_ex(context_.get(), digest, nullptr);
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

void measure_md5(bench::Report& report, const bench::Options& options, Packets& packets,
                 const std::string& label) {
  const Text* const texts = packets.texts.data();
  uint8_t digests[kBatchPkts * 16];
  Openssl openssl;
  bench::LoneModule module("digest", {{"algorithm", "md5"}}, 1);
  std::vector<bench::Contender> contenders = {
      contender("digest, md5", kBatchPkts, [&](uint32_t) { run_all(module, packets.pkts); }),
      contender("md5, AVX2", kBatchPkts,
                [&, texts](uint32_t) { md5_by(Md5Code::kAvx2, texts, kBatchPkts, digests, 16); }),
      contender("OpenSSL", 1, [&, texts](uint32_t i) { openssl.md5(texts[i], digests); })};
  if (has_md5_code(Md5Code::kAvx512)) {
    contenders.push_back(contender("md5, AVX-512", kBatchPkts, [&, texts](uint32_t) {
      md5_by(Md5Code::kAvx512, texts, kBatchPkts, digests, 16);
    }));
  }
  for (const char* const algorithm : {"sha1", "sha256"}) {
    auto rig = std::make_shared<bench::LoneModule>("digest", Dict{{"algorithm", algorithm}}, 1);
    contenders.push_back(contender(std::string("digest, ") + algorithm, kBatchPkts,
                                   [&packets, rig](uint32_t) { run_all(*rig, packets.pkts); }));
  }
  const auto results = bench::run_interleaved(contenders, options.trials, options.batches);
  report.rows(label + ", digest", results);
  report.figure(label + ": OpenSSL over AVX2", "x", bench::paired_ratio(results[2], results[1]),
                bench::Target{kLeastOverOpenssl, false});
  if (!has_md5_code(Md5Code::kAvx512)) return;
  report.figure(label + ": OpenSSL over AVX-512", "x", bench::paired_ratio(results[2], results[3]),
                bench::Target{2 * kLeastOverOpenssl, false});
}

int run(const bench::Options& options) {
  bench::set_up(kMemoryMb, options.core);
  bench::Report report("inspect", options);
  batchplane::PacketPool pool("inspect", 1024, 2048);
  const std::vector<std::string> all = words();
  for (const uint32_t payload_bytes : kPayloadBytes) {
    const std::string label = std::to_string(payload_bytes) + " B";
    Packets packets(pool, payload_bytes, all);
    if (report.wants(label + ", dpi")) measure_dpi(report, options, packets, all, label);
    if (report.wants(label + ", digest")) measure_md5(report, options, packets, label);
  }
  return report.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::parse_options(argc, argv, {.trials = 40, .batches = 60});
  return bench::guarded([&] { return run(options); });
}
