// Parameters of fabrics whose rates and delays come from a file.
#pragma once

#include <string>
#include <utility>

#include "sim/core/named_file.h"
#include "sim/topology/ethernet.h"

namespace netsim {

// Parameters of a fabric from another simulator's file. The file gives everything about a link except its
// kind.
struct FileFabricParameters {
  std::string file;
  LinkKind link_kind = LinkKind::ethernet;
  Bytes overhead = 0;
};

// Adds all of these parameters (P derives from FileFabricParameters).
template <class P>
Parameters<P>&& with_file_fabric(Parameters<P>&& parameters, const std::string& what) {
  return with_file(std::move(parameters), what)
      .choice("link", static_cast<LinkKind P::*>(&P::link_kind),
              {{"ethernet", LinkKind::ethernet}, {"infiniband", LinkKind::infiniband}}, "type of the links")
      .bytes("overhead", &P::overhead, kLinkOverheads,
             "bytes that a packet costs on the wire beyond its frame; the tool has none");
}

}  // namespace netsim
