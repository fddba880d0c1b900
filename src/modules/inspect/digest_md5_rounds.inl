// SPDX-License-Identifier: BSD-3-Clause
// digest_md5_rounds.inl - the rounds of MD5 on the vectors of `Isa`, all of whose functions are compiled
// for BP_MD5_TARGET, as these are. Each step waits for the one before it: two groups of lanes side by
// side take little longer than one.

template <uint32_t kStep, uint32_t kGroups>
BP_MD5_TARGET inline void one_step(Isa::V (&s)[kGroups][4],
                                   const Isa::V (&words)[kGroups][kWords]) {
  // The four take turns in being the one that changes.
  constexpr uint32_t kA = (64 - kStep) % 4;
  for (uint32_t g = 0; g < kGroups; ++g) {
    const Isa::V b = s[g][(kA + 1) % 4];
    const Isa::V mixed = Isa::mix<kStep / 16>(b, s[g][(kA + 2) % 4], s[g][(kA + 3) % 4]);
    const Isa::V early = Isa::add(words[g][word_of(kStep)], Isa::set(kSines[kStep]));
    const Isa::V sum = Isa::add(mixed, Isa::add(s[g][kA], early));
    s[g][kA] = Isa::add(b, Isa::rotate<kShifts[kStep / 16][kStep % 4]>(sum));
  }
}

template <uint32_t kGroups, uint32_t... kSteps>
BP_MD5_TARGET inline void all_steps(Isa::V (&s)[kGroups][4], const Isa::V (&words)[kGroups][kWords],
                                    std::integer_sequence<uint32_t, kSteps...> /*steps*/) {
  (one_step<kSteps>(s, words), ...);
}

// One block of each lane.
template <uint32_t kGroups>
BP_MD5_TARGET void add_block(const uint8_t* const* blocks,
                             uint32_t (*state)[kGroups * Isa::kLanes]) {
  Isa::V words[kGroups][kWords];
  Isa::V s[kGroups][4];
  for (uint32_t g = 0; g < kGroups; ++g) {
    Isa::load(blocks + g * Isa::kLanes, words[g]);
    for (uint32_t i = 0; i < 4; ++i)
      std::memcpy(&s[g][i], state[i] + g * Isa::kLanes, sizeof s[g][i]);
  }
  all_steps(s, words, std::make_integer_sequence<uint32_t, 64>());
  for (uint32_t g = 0; g < kGroups; ++g) {
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t* const at = state[i] + g * Isa::kLanes;
      Isa::V before;
      std::memcpy(&before, at, sizeof before);
      s[g][i] = Isa::add(s[g][i], before);
      std::memcpy(at, &s[g][i], sizeof s[g][i]);
    }
  }
}

// Of as many groups as there are texts for.
inline void md5_of(const Text* texts, uint32_t n, uint8_t* digests, uint32_t stride_bytes) {
  if (n > Isa::kLanes) {
    run<2 * Isa::kLanes>(add_block<2>, texts, n, digests, stride_bytes);
  } else {
    run<Isa::kLanes>(add_block<1>, texts, n, digests, stride_bytes);
  }
}
