#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char text[1 << 26];
static int numbers(const char *key, double **found) { /* all numbers behind a key, whatever brackets are around them */
  char *next = strstr(text, key), *end = next ? next + strlen(key) : text;
  int count = -1;
  *found = malloc(2 * sizeof text);
  do next = end + strspn(end, "[], "), (*found)[++count] = strtod(next, &end); while (end > next);
  return count;
}
int main(int argc, char **argv) {
  double *low, *shift, *factor, *gamma, *centre, *points, *coefs, *offset, x[1 << 16], score[1 << 12];
  FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
  if (!file || !fread(text, 1, sizeof text - 1, file)) return 1;
  int scaled = numbers("\"low\": ", &low) && numbers("\"shift\": ", &shift) && numbers("\"factor\": ", &factor);
  int d = numbers("\"centre\": ", &centre), n = numbers("\"points\": ", &points) / d, outputs = numbers("\"offset\": ", &offset);
  if (numbers("\"gamma\": ", &gamma) != 1 || numbers("\"coefficients\": ", &coefs) != outputs * n) return 1;
  for (int i = 0; scanf("%lf", &x[i]) == 1; i = (i + 1) % d) {
    x[i] = (scaled ? low[0] + factor[i] * (x[i] - shift[i]) : x[i]) - centre[i];
    memcpy(score, offset, outputs * sizeof *score);
    for (int k = 0; i == d - 1 && k < n; k++) { /* the row is whole */
      double distance = 0.0;
      for (int c = 0; c < d; c++) distance += pow(x[c] - points[k * d + c], 2.0);
      for (int o = 0; o < outputs; o++) score[o] += coefs[o * n + k] * exp(-gamma[0] * distance);
    }
    for (int o = 0; i == d - 1 && o < outputs; o++) printf("%.17g%c", score[o], o + 1 < outputs ? ' ' : '\n');
  }
}
