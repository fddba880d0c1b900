// SPDX-License-Identifier: BSD-3-Clause
// gtpu_reply.h - messages that a GTP-U endpoint sends itself: echo responses, error indications,
// and the list of supported extension headers.
#pragma once

#include "core/module/context.h"
#include "modules/headers/l4_header.h"
#include "modules/tunnel/gtpu_header.h"

namespace batchplane::gtpu {

// The parts of a request that its reply needs.
struct Asker {
  uint32_t l3_bytes = 0;  // offset of the outer IP header
  const uint8_t* ip = nullptr;
  l4::Place place;  // of the UDP header
};

// False for requests from multicast, unspecified or loopback addresses, or to multicast.
[[nodiscard]] bool may_answer(const Asker& asker) noexcept;

// Turns an echo request into its response. False if the frame has no room for it.
[[nodiscard]] bool turn_into_echo_response(Packet& pkt, const Asker& asker,
                                           const Message& message) noexcept;
// Both return a new packet, or nullptr when the pool is empty.
[[nodiscard]] Packet* make_error_indication(Context& ctx, Packet& pkt, const Asker& asker,
                                            uint32_t teid) noexcept;
[[nodiscard]] Packet* make_supported_extensions(Context& ctx, Packet& pkt,
                                                const Asker& asker) noexcept;

}  // namespace batchplane::gtpu
