// <simdjson.h> without its loops for each instruction set, which include every vector intrinsic: 3 MB of text. The
// library has them, and chooses among them when the program runs; what the header compiles was the portable one anyway.
#pragma once

#define SIMDJSON_IMPLEMENTATION_ICELAKE 0
#define SIMDJSON_IMPLEMENTATION_HASWELL 0
#define SIMDJSON_IMPLEMENTATION_WESTMERE 0
#include <simdjson.h>
