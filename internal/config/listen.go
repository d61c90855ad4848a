package config

// DefaultListen is the default address of regie serve (spec 13).
const DefaultListen = "127.0.0.1:7333"
