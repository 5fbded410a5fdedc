//go:build !linux

// Package dataplane gives the objects of a simulated cloud their bytes and its servers disks. It needs Linux and root.
package dataplane

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// Plane exists on Linux only.
type Plane struct{ openstacksim.DataPlane }

// Options are what may be odd about disks.
type Options struct {
	Delay  time.Duration
	Serial func(volume string) string
	Log    *slog.Logger
}

// New refuses.
func New(string, Options) (*Plane, error) {
	return nil, errors.New("disks are loop devices, which only Linux has")
}

// Close has nothing to do.
func (*Plane) Close() error { return nil }
