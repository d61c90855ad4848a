package main

import "github.com/spf13/cobra"

func (c *command) demoCommand() *cobra.Command {
	return &cobra.Command{Use: "demo"}
}
