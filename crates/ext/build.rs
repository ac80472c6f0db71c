//! Links the extension and compiles its C: the hooks and the wrapped calls, whose frames are parked below suspended fibers, the
//! realms, which exchange globals of PHP, and what they keep with fibers. Compiles in the hash of the stubs, by which the PHP library
//! recognises an extension with its own interface.

use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), String> {
    // PHP unloads extensions at exit while Weft's I/O threads may still run code of this library: never unmap it.
    println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=INTERFACE_HASH={:08x}", hash_of_stubs()?);
    println!("cargo:rustc-check-cfg=cfg(php84)");
    if php_config("--vernum")?.trim().parse::<u32>().unwrap_or(0) >= 80_400 {
        println!("cargo:rustc-cfg=php84");
    }
    compile_c()
}

/// FNV-1a (32 bits) of the files that describe the interface to PHP, in the order of their names. `tests/Stubs` computes it in PHP.
fn hash_of_stubs() -> Result<u32, String> {
    const DIRECTORY: &str = "../../stubs";
    println!("cargo:rerun-if-changed={DIRECTORY}");
    let failed = |error: std::io::Error| format!("cannot read {DIRECTORY}: {error}");
    let entries = std::fs::read_dir(DIRECTORY).map_err(failed)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "php"));
    paths.sort();
    let mut hash: u32 = 0x811c_9dc5;
    for path in paths {
        for byte in std::fs::read(path).map_err(failed)? {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    Ok(hash)
}

fn compile_c() -> Result<(), String> {
    const DIRECTORIES: [&str; 5] = ["calls", "fibers", "functions", "hooks", "realms"];
    println!("cargo:rerun-if-changed=php_versions.h");
    for directory in DIRECTORIES {
        println!("cargo:rerun-if-changed={directory}");
    }
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    println!("cargo:rerun-if-env-changed=PATH");
    let sources = DIRECTORIES
        .into_iter()
        .flat_map(|directory| std::fs::read_dir(directory).into_iter().flatten().flatten());
    let sources = sources.map(|entry| entry.path());
    let sources = sources.filter(|path| path.extension().is_some_and(|end| end == "c"));
    let mut build = cc::Build::new();
    build.files(sources);
    // This program is compiled with the assertions of the profile that it builds for.
    if cfg!(debug_assertions) {
        build.file("hooks/debug/nap.c");
    }
    build
        .include(".")
        .includes(php_includes()?)
        .std("gnu11")
        .warnings(true)
        .flag("-Wno-unused-parameter")
        .flag("-fvisibility=hidden")
        // A library that is cancelled is looked up by the address to which a replacement returns.
        .flag("-fno-optimize-sibling-calls")
        .compile("weft_c");
    Ok(())
}

/// The directories of PHP's headers.
fn php_includes() -> Result<Vec<PathBuf>, String> {
    let flags = php_config("--includes")?;
    let directories = flags.split_whitespace();
    let directories = directories.filter_map(|flag| flag.strip_prefix("-I"));
    Ok(directories.map(PathBuf::from).collect())
}

/// What `php-config` says of the PHP for which ext-php-rs generates its bindings.
fn php_config(question: &str) -> Result<String, String> {
    let program = std::env::var_os("PHP_CONFIG").unwrap_or_else(|| "php-config".into());
    let failed = |reason: String| format!("cannot run {} {question}: {reason}", program.display());
    let output = Command::new(&program).arg(question).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
