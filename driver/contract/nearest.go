package contract

import "strings"

// Nearest is the known key that is most similar to key. It reports false if more than half of the letters of the longer key differ from every
// known key. Case, "-", "_" and "." do not count. A text that is longer than any key is like none.
func Nearest(key string, known []string) (string, bool) {
	if len(key) > longestKey {
		return "", false
	}
	plain := plainKey(key)
	best, bestDistance := "", -1
	for _, k := range known {
		other := plainKey(k)
		if max(len(plain), len(other)) > 2*min(len(plain), len(other)) {
			continue // so many letters differ
		}
		if d := distance(plain, other); d*2 <= max(len(plain), len(other)) && (bestDistance < 0 || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best, bestDistance >= 0
}

// longestKey is above what any key, flag or name has that a person writes. The time grows with the product of both lengths.
const longestKey = 64

var plainKeyReplacer = strings.NewReplacer("-", "", "_", "", ".", "")

func plainKey(key string) string { return plainKeyReplacer.Replace(strings.ToLower(key)) }

// distance is the Levenshtein distance of two strings, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
