package openstacksim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// FixedID is the UUID that every cloud gives to the object of this kind ("type", "server", …) and name, if its configuration
// names no other.
func FixedID(kind, name string) string {
	sum := sha256.Sum256([]byte("openstacksim/" + kind + "/" + name))
	return uuid([16]byte(sum[:16]))
}

// FixedHex is FixedID without hyphens, as Keystone writes the IDs of projects, users and credentials.
func FixedHex(kind, name string) string { return strings.ReplaceAll(FixedID(kind, name), "-", "") }

// uuid writes b as a random (version 4) UUID.
func uuid(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newID is the UUID of a new object, from the seeded source.
func (s *Sim) newID() string { return uuid([16]byte(s.random(16))) }

func (s *Sim) random(n int) []byte {
	b := make([]byte, n)
	s.source.Read(b)
	return b
}

// isUUID reports whether OpenStack accepts id as a UUID: 32 hexadecimal digits with hyphens anywhere.
func isUUID(id string) bool {
	digits := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(id, "{"), "}"), "-", "")
	if len(digits) != 32 {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}
