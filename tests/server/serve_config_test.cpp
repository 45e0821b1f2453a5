#include "easydel/server/serve_config.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::server {
namespace {

std::string refusal(const char* yaml) {
  ServeConfig config;
  const std::string text = test::refusal([&] { config::read(parse_yaml(yaml, "s"), config, "s").throw_if_any(); });
  return test::replaced(text, "\n1 problem in s; nothing was run.", "");
}

TEST(ServeConfig, RefusesKeysThatContradictEachOther) {
  EXPECT_EQ(refusal("{port: 0, max_connections: 10}"), "(nothing was refused)");
  EXPECT_EQ(refusal("{ssl_certfile: a}"),
            "s:1:16: ssl_certfile: is given without ssl_keyfile\n    HTTPS needs a certificate and its key");
  EXPECT_EQ(refusal("{ssl_keyfile: a}"),
            "s:1:15: ssl_keyfile: is given without ssl_certfile\n    HTTPS needs a certificate and its key");
  EXPECT_EQ(refusal("{cors_origins: [a]}"),
            "s:1:16: cors_origins: is given without enable_cors\n    set enable_cors: true, or leave the origins out");
  EXPECT_EQ(refusal("{max_connections: 2, max_connections_per_address: 3}"),
            "s:1:51: max_connections_per_address: is more than max_connections\n    one address cannot have more "
            "connections than the server");
  EXPECT_EQ(refusal("{max_header_bytes: 1024, max_target_bytes: 1024}"),
            "s:1:44: max_target_bytes: is not less than max_header_bytes\n    the target is part of the first line, "
            "which counts as headers");
  EXPECT_EQ(
      refusal("{max_held_bytes: 16777216, max_held_bytes_per_address: 16777217}"),
      "s:1:56: max_held_bytes_per_address: is more than max_held_bytes\n    one address cannot hold more than all "
      "of them");
  EXPECT_EQ(refusal("{max_held_bytes: 16777216}"), "(nothing was refused)");
  const std::string never = "\n    a body of that size could never be taken; raise the one or lower the other";
  EXPECT_EQ(refusal("{max_held_bytes: 1000000}"), "s:1:18: max_held_bytes: is less than max_body_bytes" + never);
  EXPECT_EQ(refusal("{max_held_bytes_per_address: 1000000}"),
            "s:1:30: max_held_bytes_per_address: is less than max_body_bytes" + never);
  EXPECT_EQ(refusal("{max_body_bytes: 1000000000}"),
            "s:1:18: max_body_bytes: is more than max_held_bytes_per_address" + never);
  EXPECT_EQ(
      refusal("{port: 80, metrics_port: 80}"),
      "s:1:26: metrics_port: is the port of the server\n    give another one, or leave it out: /metrics is there too");
  EXPECT_EQ(refusal("{port: 0, metrics_port: 0, otlp_endpoint: 'https://collector.example:4318'}"),
            "(nothing was refused)");
  for (const char* url : {"localhost:4318", "ftp://a", "http://", "http:///x", "http://a b"})
    EXPECT_EQ(refusal(str("{otlp_endpoint: '", url, "'}").c_str()),
              str("s:1:17: otlp_endpoint: '", url, "' is not a URL of http or https\n    http://127.0.0.1:4318"));
  EXPECT_EQ(refusal("{models: {'': a}}"),
            "s:1:10: models: has a model without a name\n    give each model the name that requests use");
  EXPECT_EQ(refusal("{port: 65536}"),
            "s:1:8: port: 65536 is out of range\n    expected an integer from 0 to 65535 (default 11556)");
}

}  // namespace
}  // namespace easydel::server
