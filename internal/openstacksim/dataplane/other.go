//go:build !linux

// Package dataplane holds the bytes of the objects of a simulated cloud and the disks of its servers. It needs Linux and root.
package dataplane

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// Plane exists on Linux only.
type Plane struct{ openstacksim.DataPlane }

// Options change the behaviour of disks.
type Options struct {
	Delay  time.Duration
	Serial func(volume string) string
	Log    *slog.Logger
}

// New returns an error.
func New(string, Options) (*Plane, error) {
	return nil, errors.New("disks are loop devices, which exist on Linux only")
}

// Close does nothing.
func (*Plane) Close() error { return nil }
