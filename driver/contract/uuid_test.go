package contract

import "testing"

func TestIsUUID(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0b6c1a52-9f3e-4d7a-8c21-5e0f4b7a9d13":          true,
		"0B6C1A52-9F3E-4D7A-8C21-5E0F4B7A9D13":          true,
		"":                                              false,
		"0b6c1a529f3e4d7a8c215e0f4b7a9d13":              false, // without hyphens, as Keystone writes a project
		"{0b6c1a52-9f3e-4d7a-8c21-5e0f4b7a9d13}":        false,
		"urn:uuid:0b6c1a52-9f3e-4d7a-8c21-5e0f4b7a9d13": false,
		"0b6c1a52-9f3e-4d7a-8c21-5e0f4b7a9d1":           false,
		"0b6c1a52-9f3e-4d7a-8c21-5e0f4b7a9d133":         false,
		"0b6c1a5209f3e-4d7a-8c21-5e0f4b7a9d13":          false,
		"0b6c1a52-9f3e-4d7a-8c21-5e0f4b7a9d1g":          false,
		"0b6c1a52-9f3e-4d7a-8c21-5e0f-b7a9d13":          false,
		"0b6c1a52-9f3e-4d7a-8c21-5e0f4b7/../1":          false,
		"0b6c1a52-9f3e-4d7a-8c21-5e0f4b7a9dé":           false, // 36 bytes
	} {
		if got := IsUUID(text); got != want {
			t.Errorf("%q: want %v, got %v", text, want, got)
		}
	}
}
