package contract

// IsUUID reports whether s is the canonical text of a UUID (RFC 9562, section 4): 36 characters with hyphens, in either case.
//
// Cinder and Nova give such IDs to volumes, snapshots, backups and servers. Any other text names no object and must not reach a URL.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		digit := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if hyphen && c != '-' || !hyphen && !digit {
			return false
		}
	}
	return true
}
