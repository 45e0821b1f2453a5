#include "easydel/elarge/quantize.h"

#include "easydel/elarge/core.h"

namespace easydel::elarge {

std::string quantize_model(const QuantizeRequest& request) {
  using Function = void (*)(const QuantizeRequest&, std::string&);
  std::string said;
  reinterpret_cast<Function>(core_symbol("easydel_quantize_model"))(request, said);
  return said;
}

}  // namespace easydel::elarge
