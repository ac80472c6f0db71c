// Blocks of code and tables that scroll can be reached with the keyboard, and the button of the menu of versions is named by the version it shows.
const name = () => {
    for (const block of document.querySelectorAll('pre > code, .md-typeset__scrollwrap')) {
        block.tabIndex = block.scrollWidth > block.clientWidth ? 0 : -1;
        if (block.tabIndex < 0) block.removeAttribute('tabindex');
    }
    document.querySelector('.md-version__current')?.removeAttribute('aria-label');
};
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
addEventListener('resize', name);
name();
