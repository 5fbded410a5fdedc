package config

import "github.com/cinder-csi/cinder-csi/driver/contract"

// The exit codes of the driver, as upstream's plugin has them.
const (
	ExitOK      = 0
	ExitFailure = 1
)

// Exits are all exit codes, as the reference lists them.
var Exits = []contract.Described{
	ExitOK: {
		Name:    "0",
		Meaning: "the driver got SIGTERM or SIGINT, and the RPCs in progress have ended or `--drain-timeout` has passed. Or a command is done",
	},
	ExitFailure: {
		Name:    "1",
		Meaning: "a wrong flag, a file that it cannot read, or an address on which it cannot listen. Or a command failed. A cloud that does not answer ends nothing",
	},
}
