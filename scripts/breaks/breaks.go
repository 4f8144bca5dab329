package main

// The breaks: each is a mistake that a person could make in the core, and that
// the design document warns of. Keep each as small as the mistake would be.
var breaks = []breakage{}
