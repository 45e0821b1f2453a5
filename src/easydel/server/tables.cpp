// The tables of the server's keys and of what is stored.
#include "easydel/config/tables.h"
#include "easydel/server/adapter_request.h"
#include "easydel/server/api_key.h"
#include "easydel/server/chat_request.h"
#include "easydel/server/embedding_request.h"
#include "easydel/server/key_audit.h"
#include "easydel/server/messages_request.h"
#include "easydel/server/responses_request.h"
#include "easydel/server/serve_config.h"
#include "easydel/server/text_request.h"
#include "easydel/server/weights_request.h"

namespace easydel::config {

template const Section& section_of<server::ServeConfig>();
template const Section& section_of<server::ApiKey>();
template const Section& section_of<server::AuditEntry>();
template const Section& section_of<server::KeySettings>();
template const Section& section_of<server::ConversationFields>();
template const Section& section_of<server::ChatOnlyFields>();
template const Section& section_of<server::GenerationFields>();
template const Section& section_of<server::ChatRequest>();
template const Section& section_of<server::ResponsesFields>();
template const Section& section_of<server::ResponsesRequest>();
template const Section& section_of<server::MessagesFields>();
template const Section& section_of<server::MessagesOnlyFields>();
template const Section& section_of<server::MessagesRequest>();
template const Section& section_of<server::EmbeddingsRequest>();
template const Section& section_of<server::RerankRequest>();
template const Section& section_of<server::ScoreRequest>();
template const Section& section_of<server::ClassifyRequest>();
template const Section& section_of<server::TextOnlyFields>();
template const Section& section_of<server::TextRequest>();
template const Section& section_of<server::TokenizeRequest>();
template const Section& section_of<server::DetokenizeRequest>();
template const Section& section_of<server::LoadAdapterRequest>();
template const Section& section_of<server::UnloadAdapterRequest>();
template const Section& section_of<server::UpdateWeightsRequest>();

}  // namespace easydel::config
