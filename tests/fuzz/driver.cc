// SPDX-License-Identifier: BSD-3-Clause
// driver.cc - runs one fuzz target without a fuzzer: its corpus, then mutations of it from a seed.
//
// usage: replay_X FOLDER [--golden FOLDER] [--runs N] [--packets N] [--seed N]
//    or: replay_X FILE...
// Mutations go on until both bounds are reached; with BATCHPLANE_LONG=1 both are 50 times higher.
// --golden: frames of the golden cases below that folder are seeds, too, so that what reaches a
// module in its golden case reaches it here.
// An input that ends the process is written to fuzz-failure-X.bin in the current folder.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz.h"
#include "golden_inputs.h"
#include "mutator.h"
#include "ports/eal.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

// Of the sanitizers' runtime; null in builds without one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace batchplane::fuzz {
namespace {

constexpr const char* kTarget = TEXT(FUZZ_TARGET);
constexpr const char* kFailureFile = "fuzz-failure-" TEXT(FUZZ_TARGET) ".bin";
constexpr uint64_t kLongFactor = 50;
constexpr uint32_t kEalMemoryMb = 1024;

struct Options {
  std::vector<std::string> paths;
  std::string golden;
  uint64_t runs = 10'000;
  uint64_t packets = 0;
  uint64_t seed = 1;
};

const Bytes* current_input = nullptr;

// Only calls that a signal handler may make.
void save_current_input() {
  if (current_input == nullptr) return;
  const int fd = open(kFailureFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  [[maybe_unused]] ssize_t n = write(fd, current_input->data(), current_input->size());
  close(fd);
  constexpr char kSaved[] = "fuzz: the input is in fuzz-failure-" TEXT(FUZZ_TARGET) ".bin\n";
  n = write(STDERR_FILENO, kSaved, sizeof kSaved - 1);
}

void on_signal(int number) {
  save_current_input();
  signal(number, SIG_DFL);
  raise(number);
}

void watch_for_failure() {
  if (&__sanitizer_set_death_callback != nullptr)
    __sanitizer_set_death_callback(save_current_input);
  signal(SIGABRT, on_signal);
  if (&__sanitizer_set_death_callback != nullptr) return;  // it catches the others itself
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) signal(number, on_signal);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--runs" && has_value) {
      options.runs = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--packets" && has_value) {
      options.packets = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--seed" && has_value) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--golden" && has_value) {
      options.golden = argv[++i];
    } else {
      options.paths.push_back(word);
    }
  }
  const char* is_long = std::getenv("BATCHPLANE_LONG");
  if (is_long != nullptr && std::strcmp(is_long, "1") == 0) {
    options.runs *= kLongFactor;
    options.packets *= kLongFactor;
  }
  return options;
}

std::vector<Bytes> read_corpus(const std::vector<std::string>& paths, bool& is_folder) {
  std::vector<std::filesystem::path> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.emplace_back(path);
      continue;
    }
    is_folder = true;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Bytes> corpus;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("cannot read " + path.string());
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

void run_one(const Bytes& input) {
  current_input = &input;
  FUZZ_TARGET(input.data(), input.size());
  current_input = nullptr;
}

int run(const Options& options) {
  bool is_folder = false;
  std::vector<Bytes> corpus = read_corpus(options.paths, is_folder);
  if (corpus.empty()) {
    std::fprintf(
        stderr,
        "usage: replay FOLDER [--golden FOLDER] [--runs N] [--packets N] [--seed N], or FILE...\n");
    return 2;
  }
  if (!options.golden.empty()) {
    const std::vector<Bytes> more = golden_inputs(options.golden);
    if (more.empty()) fail("no golden case below " + options.golden);
    corpus.insert(corpus.end(), more.begin(), more.end());
  }
  for (const Bytes& input : corpus) run_one(input);
  uint64_t runs = 0;
  if (is_folder) {
    Mutator mutator(corpus, options.seed);
    for (; runs < options.runs || tally.pkts < options.packets; ++runs) run_one(mutator.next());
  }
  std::printf(
      "%s: %zu inputs and %llu mutations (seed %llu) passed, 0 failed; %llu frames, "
      "%llu packets given to modules, %llu inputs well-formed\n",
      kTarget, corpus.size(), static_cast<unsigned long long>(runs),
      static_cast<unsigned long long>(options.seed), static_cast<unsigned long long>(tally.frames),
      static_cast<unsigned long long>(tally.pkts), static_cast<unsigned long long>(tally.accepted));
  return 0;
}

}  // namespace
}  // namespace batchplane::fuzz

int main(int argc, char** argv) {
  batchplane::ports::start_eal(
      {.memory_mb = batchplane::fuzz::kEalMemoryMb, .may_use_hugepages = false});
  batchplane::fuzz::watch_for_failure();
  const int result = batchplane::fuzz::run(batchplane::fuzz::parse(argc, argv));
  std::fflush(stdout);
  return result;
}
