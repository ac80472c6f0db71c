dnl Builds the extension from source where PIE finds no binary: phpize && ./configure && make. Cargo does the work.
PHP_ARG_ENABLE([weft], [whether to enable weft], [AS_HELP_STRING([--enable-weft], [Enable weft])], [yes])

if test "$PHP_WEFT" != "no"; then
  if test "$PHP_THREAD_SAFETY" = "yes"; then
    AC_MSG_ERROR([this PHP is thread-safe (ZTS): Weft needs a PHP without thread safety (NTS)])
  fi

  dnl A distribution's cargo, which is often too old, may come before that of rustup on the PATH.
  WEFT_RUST=`sed -n 's/^rust-version = "\(.*\)"/\1/p' "$srcdir/Cargo.toml"`
  AC_MSG_CHECKING([for cargo of Rust $WEFT_RUST or newer])
  CARGO=
  weft_older=
  weft_separator=$IFS
  IFS=:
  for weft_directory in $PATH "$HOME/.cargo/bin"; do
    IFS=$weft_separator
    test -x "$weft_directory/cargo" || continue
    weft_version=`"$weft_directory/cargo" --version 2>/dev/null | sed -n 's/^cargo \(@<:@0-9.@:>@*\).*/\1/p'`
    AS_VERSION_COMPARE([$weft_version], [$WEFT_RUST], [weft_older="$weft_older, found $weft_directory/cargo $weft_version"], [CARGO=$weft_directory/cargo], [CARGO=$weft_directory/cargo])
    test -z "$CARGO" || break
  done
  IFS=$weft_separator
  AC_MSG_RESULT([${CARGO:-no}])
  if test -z "$CARGO"; then
    AC_MSG_ERROR([Weft needs cargo of Rust $WEFT_RUST or newer$weft_older. Install Rust from https://rustup.rs, or a binary package of Weft])
  fi
  PHP_SUBST([CARGO])

  dnl The directories in which the crate clang-sys looks for it. libclang-cpp is another library.
  AC_MSG_CHECKING([for libclang])
  weft_libclang=no
  if test -n "$LIBCLANG_PATH"; then
    weft_candidates="$LIBCLANG_PATH $LIBCLANG_PATH/libclang.so* $LIBCLANG_PATH/libclang-*.so*"
  else
    weft_candidates=
    for weft_directory in `llvm-config --libdir 2>/dev/null` `echo $LD_LIBRARY_PATH $LIBRARY_PATH | tr : ' '` \
      '/usr/local/llvm*/lib*' '/usr/local/lib*/*/*' '/usr/local/lib*/*' '/usr/local/lib*' '/usr/lib*/*/*' '/usr/lib*/*' '/usr/lib*'
    do
      weft_candidates="$weft_candidates $weft_directory/libclang.so* $weft_directory/libclang-*.so*"
    done
  fi
  for weft_file in $weft_candidates; do
    case $weft_file in *libclang-cpp*) continue ;; esac
    if test -f "$weft_file"; then weft_libclang=$weft_file; break; fi
  done
  AC_MSG_RESULT([$weft_libclang])
  if test "$weft_libclang" = "no"; then
    AC_MSG_ERROR([libclang is missing: it reads PHP's headers. Install it (libclang-dev on Debian and Ubuntu), or set LIBCLANG_PATH to its directory, or install a binary package of Weft])
  fi

  WEFT_PHP_CONFIG=`command -v "$PHP_CONFIG"`
  PHP_SUBST([WEFT_PHP_CONFIG])
  PHP_ADD_MAKEFILE_FRAGMENT([Makefile.frag])
  PHP_MODULES="$PHP_MODULES \$(phplibdir)/weft.so"
fi
