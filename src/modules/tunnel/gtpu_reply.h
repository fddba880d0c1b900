// SPDX-License-Identifier: BSD-3-Clause
// gtpu_reply.h - messages that a GTP-U endpoint makes itself: echo responses, error indications,
// and which extension headers it knows.
#pragma once

#include "core/module/context.h"
#include "modules/headers/l4_header.h"
#include "modules/tunnel/gtpu_header.h"

namespace batchplane::gtpu {

// What a reply takes from the message that it answers.
struct Asker {
  uint32_t l3_bytes = 0;  // what comes before the outer IP header
  const uint8_t* ip = nullptr;
  l4::Place place;  // of UDP
};

// Nobody answers groups, hosts without address, and loopback.
[[nodiscard]] bool may_answer(const Asker& asker) noexcept;

// Turns an echo request into its response. False when the frame has no room behind it.
[[nodiscard]] bool turn_into_echo_response(Packet& pkt, const Asker& asker,
                                           const Message& message) noexcept;
// New packets; nullptr when the pool is empty.
[[nodiscard]] Packet* make_error_indication(Context& ctx, Packet& pkt, const Asker& asker,
                                            uint32_t teid) noexcept;
[[nodiscard]] Packet* make_supported_extensions(Context& ctx, Packet& pkt,
                                                const Asker& asker) noexcept;

}  // namespace batchplane::gtpu
