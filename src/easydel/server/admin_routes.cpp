// The routes that make, change and list keys.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/server/api.h"
#include "easydel/server/json_body.h"

namespace easydel::server {
namespace {

constexpr size_t max_listed_entries = 1000;

Value with_secret(const KeyStore::Created& created) {
  Value out = shown(created.key);
  out.set("api_key", Value::text(created.secret));
  out.set("message", Value::text("Keep this key: it is not shown again."));
  return out;
}

std::string audit_json(const AuditEntry& entry) {
  return str(R"({"timestamp": )", entry.timestamp, R"(, "action": )", json_text(entry.action), R"(, "key_id": )",
             json_text(entry.key_id), R"(, "actor": )", json_text(entry.actor), R"(, "ip_address": )",
             json_text(entry.address), R"(, "details": )", json_text(entry.detail), "}");
}

}  // namespace

void Api::add_admin_routes() {
  // Runs `action` for the key that the path names, or answers 404.
  const auto for_key = [this](auto action) {
    return [this, action](std::shared_ptr<Call> call) {
      const std::string id = call->parameter("id");
      const std::vector<ApiKey> all = keys_->list();
      if (std::ranges::none_of(all, [&](const ApiKey& key) { return key.key_id == id; }))
        return call->refuse({.status = 404, .message = str("There is no key '", id, "'."), .code = "key_not_found"});
      call->respond_json(200, to_json(action(*call, id)));
    };
  };
  serve("POST /v1/admin/keys", [this](std::shared_ptr<Call> call) {
    KeySettings settings;
    read_body(call->request().body, settings);
    call->respond_json(200, to_json(with_secret(keys_->create(settings, call->admission().key_id))));
  });
  serve("GET /v1/admin/keys", [this](std::shared_ptr<Call> call) {
    Value list = Value::list();
    for (const ApiKey& key : keys_->list()) list.items.push_back(shown(key));
    Value out = Value::map();
    out.set("total", Value::integer(int64_t(list.items.size())));
    out.set("keys", std::move(list));
    call->respond_json(200, to_json(out));
  });
  serve("GET /v1/admin/keys/stats",
        [this](std::shared_ptr<Call> call) { call->respond_json(200, to_json(keys_->stats())); });
  serve("GET /v1/admin/audit-logs", [this](std::shared_ptr<Call> call) {
    std::string list;
    for (const AuditEntry& entry : keys_->audit(max_listed_entries))
      list += (list.empty() ? "" : ", ") + audit_json(entry);
    call->respond_json(200, R"({"logs": [)" + list + "]}");
  });
  serve("GET /v1/admin/keys/{id}", for_key([this](Call&, const std::string& id) { return shown(keys_->get(id)); }));
  serve("PATCH /v1/admin/keys/{id}", for_key([this](Call& call, const std::string& id) {
          return shown(keys_->change(id, call.body(), call.admission().key_id));
        }));
  serve("DELETE /v1/admin/keys/{id}", for_key([this](Call& call, const std::string& id) {
          keys_->remove(id, call.admission().key_id);
          Value out = Value::map();
          out.set("key_id", Value::text(id));
          out.set("deleted", Value::boolean(true));
          return out;
        }));
  serve("DELETE /v1/admin/keys/{id}/revoke", for_key([this](Call& call, const std::string& id) {
          return shown(keys_->revoke(id, call.admission().key_id));
        }));
  for (const bool suspended : {true, false})
    serve(str("POST /v1/admin/keys/{id}/", suspended ? "suspend" : "reactivate"),
          for_key([this, suspended](Call& call, const std::string& id) {
            return shown(keys_->set_suspended(id, suspended, call.admission().key_id));
          }));
  serve("POST /v1/admin/keys/{id}/rotate", for_key([this](Call& call, const std::string& id) {
          return with_secret(keys_->rotate(id, call.admission().key_id));
        }));
}

}  // namespace easydel::server
