// Stands in for a header that the torch wheel lacks or that we keep out: see README.md.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>
