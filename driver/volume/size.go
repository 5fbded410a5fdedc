package volume

import "fmt"

// Size is a volume's size in bytes. Cinder counts whole GiB, CSI counts bytes; every conversion happens here.
type Size int64

// GiB is the size of n gibibytes.
func GiB(n int) Size { return Size(n) << 30 }

// RoundUp is the size in whole GiB, rounded up, as Cinder wants it.
func (s Size) RoundUp() int { return int((s + 1<<30 - 1) >> 30) }

// String shows whole GiB where the size is that, bytes otherwise.
func (s Size) String() string {
	if s >= 0 && s%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", s>>30)
	}
	return fmt.Sprintf("%d bytes", int64(s))
}
