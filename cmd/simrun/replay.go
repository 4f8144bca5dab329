package main

import "github.com/spf13/cobra"

func newReplay(s *streams, common *commonFlags) *cobra.Command { return &cobra.Command{Use: "replay"} }
