<?php

declare(strict_types=1);

namespace Weft\Examples\Api;

enum Genre: string
{
    case Novel = 'novel';
    case Craft = 'craft';
    case Science = 'science';
}
