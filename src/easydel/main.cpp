// The program: everything it does is in the libraries.
#include <cstdio>

int main() {
  std::puts("easydel " EASYDEL_VERSION);
  return 0;
}
