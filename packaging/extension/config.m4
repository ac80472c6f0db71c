dnl Builds the extension from source where PIE finds no binary: phpize && ./configure && make. Cargo does the work.
PHP_ARG_ENABLE([weft], [whether to enable weft], [AS_HELP_STRING([--enable-weft], [Enable weft])], [yes])

if test "$PHP_WEFT" != "no"; then
  if test "$PHP_THREAD_SAFETY" = "yes"; then
    AC_MSG_ERROR([this PHP is thread-safe (ZTS): Weft needs a PHP without thread safety (NTS)])
  fi
  AC_PATH_PROG([CARGO], [cargo], [no], [$PATH:$HOME/.cargo/bin])
  if test "$CARGO" = "no"; then
    AC_MSG_ERROR([cargo is missing: Weft is written in Rust. Install Rust from https://rustup.rs, or a binary package of Weft])
  fi
  PHP_SUBST([CARGO])
  WEFT_PHP_CONFIG=`command -v "$PHP_CONFIG"`
  PHP_SUBST([WEFT_PHP_CONFIG])
  PHP_ADD_MAKEFILE_FRAGMENT([Makefile.frag])
  PHP_MODULES="$PHP_MODULES \$(phplibdir)/weft.so"
fi
