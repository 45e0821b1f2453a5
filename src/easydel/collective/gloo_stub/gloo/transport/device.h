// Stands in for a header that the torch wheel lacks or that we keep out: see README.md.
#pragma once
namespace gloo::transport {
class Device;
class UnboundBuffer;
}  // namespace gloo::transport
