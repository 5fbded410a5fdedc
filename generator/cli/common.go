package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// common is the flags that every command takes, so that a script can give one set of them to all. What a command has no use for is
// checked all the same: a typing error is found by whichever command sees it first.
type common struct {
	config  string
	timeout time.Duration
	verbose bool

	distribution v1alpha1.Distribution // what config holds, once the flags are read
}

func (c *common) bind(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&c.config, "config", "", "a Distribution: the settings that differ from the defaults (- is stdin)")
	f.DurationVar(&c.timeout, "timeout", 2*time.Minute, "how long the cloud may take in all")
	f.BoolVarP(&c.verbose, "verbose", "v", false, "show the requests to the cloud")
}

// read checks the flags and reads the configuration, strictly.
func (c *common) load(w *World, cmd *cobra.Command) error {
	c.distribution = v1alpha1.Distribution{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindDistribution}
	if c.timeout <= 0 {
		return usage("--timeout %s: want more than nothing, such as 2m", c.timeout)
	}
	if c.config == "" {
		return nil
	}
	if f := cmd.Flag("inventory"); c.config == "-" && f != nil && f.Value.String() == "-" {
		return usage("--config and --inventory cannot both be stdin")
	}
	content, err := readFile(w, c.config)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	c.distribution, err = v1alpha1.DecodeDistribution(c.config, content)
	if why := notAConfiguration(c.config, content); err != nil && why != "" {
		return usage("%s", why)
	}
	return err
}
