fn main() {
    // PHP unloads extensions at exit while Weft's I/O threads may still run code of this library: never unmap it.
    println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
